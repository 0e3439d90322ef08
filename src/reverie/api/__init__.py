"""The GraphQL face."""
