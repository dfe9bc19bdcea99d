"""What a PyTorch trace records, and what it cannot see."""
