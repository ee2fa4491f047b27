"""`python -m costmodel`."""

from costmodel.cli import main

if __name__ == "__main__":
    main()
