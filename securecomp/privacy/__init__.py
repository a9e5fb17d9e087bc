"""What a result may reveal: sensitivities, noise, accounting, and a budget that runs out."""
