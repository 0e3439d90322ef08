"""All Cypher, one module per noun: records in, domain values out."""
