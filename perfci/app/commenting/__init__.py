"""Reports judged by the configuration here, left where their commit is discussed."""
