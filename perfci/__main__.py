"""``python -m perfci``."""

from perfci.cli.main import main

if __name__ == "__main__":
    main()
