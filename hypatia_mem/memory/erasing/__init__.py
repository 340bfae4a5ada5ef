"""What erasing is made of: the pieces of a text, the places they lie in, the client's own files."""
