"""Graph memory for AI agents, served as a GraphQL API over Neo4j."""

from importlib.metadata import version

__version__ = version("reverie")
