"""What inputs reach: lines, edges and refusals, measured in processes of their own."""
