"""Proximal policy optimization with a shared agent module, minibatches and clipping."""

import argparse

import torch
import torch.nn as nn
from torch.distributions import Categorical


def parse_args():
    parser = argparse.ArgumentParser()
    parser.add_argument("--num-envs", type=int, default=4)
    parser.add_argument("--num-steps", type=int, default=8)
    parser.add_argument("--updates", type=int, default=5)
    parser.add_argument("--update-epochs", type=int, default=2)
    parser.add_argument("--minibatch-size", type=int, default=8)
    parser.add_argument("--gamma", type=float, default=0.95)
    parser.add_argument("--ent-coef", type=float, default=0.01)
    parser.add_argument("--vf-coef", type=float, default=0.5)
    parser.add_argument("--max-grad-norm", type=float, default=0.5)
    return parser.parse_args()


class Agent(nn.Module):
    def __init__(self):
        super().__init__()
        self.critic = nn.Sequential(nn.Linear(3, 16), nn.Tanh(), nn.Linear(16, 1))
        self.actor = nn.Sequential(nn.Linear(3, 16), nn.Tanh(), nn.Linear(16, 2))

    def get_value(self, x):
        return self.critic(x)

    def get_action_and_value(self, x, action=None):
        logits = self.actor(x)
        probs = Categorical(logits=logits)
        if action is None:
            action = probs.sample()
        return action, probs.log_prob(action), probs.entropy(), self.critic(x)


def env_step(state, action):
    push = (action * 2 - 1).float().unsqueeze(1)
    state = 0.9 * state + 0.2 * push + 0.05 * torch.randn_like(state)
    return state, 1 - state.abs().mean(dim=1)


if __name__ == "__main__":
    args = parse_args()
    torch.manual_seed(1)
    agent = Agent()
    optimizer = torch.optim.Adam(agent.parameters(), lr=2.5e-3, eps=1e-5)
    shape = (args.num_steps, args.num_envs)
    obs, actions = torch.zeros(*shape, 3), torch.zeros(shape)
    logprobs, rewards, values = torch.zeros(shape), torch.zeros(shape), torch.zeros(shape)
    state = torch.randn(args.num_envs, 3)

    for update in range(args.updates):
        for step in range(args.num_steps):
            obs[step] = state
            with torch.no_grad():
                action, logprob, _, value = agent.get_action_and_value(state)
                values[step] = value.flatten()
            actions[step] = action
            logprobs[step] = logprob
            state, rewards[step] = env_step(state, action)

        with torch.no_grad():
            next_value = agent.get_value(state).flatten()
            returns = torch.zeros_like(rewards)
            for t in reversed(range(args.num_steps)):
                next_value = rewards[t] + args.gamma * next_value
                returns[t] = next_value
            advantages = returns - values

        b_obs, b_actions = obs.reshape(-1, 3), actions.reshape(-1)
        b_logprobs, b_advantages, b_returns = logprobs.reshape(-1), advantages.reshape(-1), returns.reshape(-1)
        for epoch in range(args.update_epochs):
            for mb_inds in torch.randperm(b_obs.size(0)).split(args.minibatch_size):
                _, newlogprob, entropy, newvalue = agent.get_action_and_value(b_obs[mb_inds], b_actions[mb_inds])
                ratio = (newlogprob - b_logprobs[mb_inds]).exp()
                mb_advantages = b_advantages[mb_inds]
                mb_advantages = (mb_advantages - mb_advantages.mean()) / (mb_advantages.std() + 1e-8)

                pg_loss1 = -mb_advantages * ratio
                pg_loss2 = -mb_advantages * torch.clamp(ratio, 0.8, 1.2)
                pg_loss = torch.max(pg_loss1, pg_loss2).mean()
                newvalue = newvalue.view(-1)
                v_loss = 0.5 * ((newvalue - b_returns[mb_inds]) ** 2).mean()
                entropy_loss = entropy.mean()
                loss = pg_loss - args.ent_coef * entropy_loss + v_loss * args.vf_coef

                optimizer.zero_grad()
                loss.backward()
                nn.utils.clip_grad_norm_(agent.parameters(), args.max_grad_norm)
                optimizer.step()
        print(f"update {update} value loss {v_loss.item():.4f} policy loss {pg_loss.item():.4f}")
