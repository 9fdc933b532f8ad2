"""Files, processes, signals and threads of the operating system."""
