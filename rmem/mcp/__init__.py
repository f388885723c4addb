"""The team memory for coding agents over the Model Context Protocol: `rmem mcp` on standard input and output, and
/workspaces/{workspace}/mcp of a server over HTTP. Each is a Host, which decides whose memory a call uses; tools and
resources are the same."""
