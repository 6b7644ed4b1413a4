"""Why work waits: each second of a wait in one class, in words, with what would end it."""
