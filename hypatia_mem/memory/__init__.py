"""What the product does: turns, projects, remembering, forgetting, briefs. No SQL, no argv."""
