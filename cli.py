"""Launcher for a checkout: `python cli.py plan llama-3.1-405b --on dgx-h100:16384`."""

from costmodel.cli import main

if __name__ == "__main__":
    main()
