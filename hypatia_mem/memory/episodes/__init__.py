"""What a session was about and what it left: episodes, open threads."""
