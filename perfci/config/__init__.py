"""``[tool.perfci]`` of pyproject.toml, or perfci.toml: read, checked, and edited."""
