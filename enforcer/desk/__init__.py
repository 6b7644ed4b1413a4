"""The quota desk: what is asked for, who must agree, what it would do, and when it ends."""
