"""Where rows come from: exporters, the simulated fleet, replayed traces. One module per source."""
