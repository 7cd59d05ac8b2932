"""What the service tests stand on: an HTTP client, a service of their own, root file systems, looks at the host."""
