"""Interfaces of other tools, over our metrics."""
