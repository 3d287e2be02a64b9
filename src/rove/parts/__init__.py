"""What agents are made of: networks, random numbers, the replay buffer and the platform."""
