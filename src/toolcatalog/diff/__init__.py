"""What changed between two versions, and which clients it breaks."""
