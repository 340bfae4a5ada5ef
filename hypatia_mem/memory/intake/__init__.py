"""From spool and transcript to stored turns."""
