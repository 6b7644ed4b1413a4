"""The only writers to a cluster: live, dry run and in memory, behind one port."""
