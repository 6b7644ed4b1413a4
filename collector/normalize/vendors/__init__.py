"""One module per exporter: its names, and what each of them means. Tables only, no logic."""
