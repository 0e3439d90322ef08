"""The demo's data: two months of a software team."""
