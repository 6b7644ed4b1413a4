"""Quota and priority as one file says them: what differs in the cluster, and the writes to mend it.

Pure: live objects and a quota file become changes. Whoever carries them out records them first.
"""
