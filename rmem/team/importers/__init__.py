"""Import memories from what a machine already has. Transcripts of coding agents are read as the events that hooks would
have reported; git's history shows what was fixed, what was reverted and what changes together."""
