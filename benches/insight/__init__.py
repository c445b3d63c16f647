"""Jobs with one planted fault each, and healthy ones."""
