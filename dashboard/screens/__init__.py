"""Streamlit screens, one script per file, listed by ``dashboard.app``; no SQL and no measure."""
