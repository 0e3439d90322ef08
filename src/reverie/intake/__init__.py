"""What documents are made of: links fetched, files read, each within limits of its own."""
