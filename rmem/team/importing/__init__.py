"""First-day value: what a machine already has is mined into memories. Transcripts of coding agents are read as the
events that hooks would have told; git's history tells what was fixed, what was taken back and what changes
together."""
