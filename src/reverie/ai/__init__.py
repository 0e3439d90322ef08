"""Embedders: a small Protocol, its OpenAI and its local version."""
