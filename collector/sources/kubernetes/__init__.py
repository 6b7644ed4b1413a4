"""The cluster's API server: what it has, and each change of it, as small typed objects."""
