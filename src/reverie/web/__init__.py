"""HTTP: the application, its routes, credentials and health."""
