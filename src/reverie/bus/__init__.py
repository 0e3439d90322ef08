"""The bus between processes: door-bells that say where to look, over Redis or within one process."""
