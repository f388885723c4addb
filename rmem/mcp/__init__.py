"""The team memory for coding agents by the Model Context Protocol: `rmem mcp` on standard input and output, and
/workspaces/{workspace}/mcp of a server over HTTP. Both are a Host, which says for each call whose memory it is; the
tools and resources are the same."""
