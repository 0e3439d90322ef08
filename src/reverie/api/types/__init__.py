"""One module per noun: shapes and descriptions."""
