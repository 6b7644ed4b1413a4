"""Brings the past in: from a Prometheus server's HTTP API and from Slurm's accounting.

What was scraped by another server becomes the rows that a scrape of our own would have given: the
same normalisation reads both. What is known only afterwards is stored exactly once, in pieces whose
ids follow from what they hold, so that an import may be killed and repeated at any time.
"""
