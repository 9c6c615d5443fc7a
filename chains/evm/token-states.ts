import { concat, encodeFunctionData, type Hex, hexToBigInt, parseAbi, slice, zeroHash } from "viem";
import { ChainError, parseAnswer } from "../errors.ts";
import { keccak256 } from "../keccak256.ts";
import { readCodeHashes } from "./account-code.ts";
import { type Call, type CallOutcome, simulateCalls } from "./multicall.ts";
import type { EvmChain, EvmToken } from "./open-evm-chain.ts";
import { throwChainError } from "./rpc-errors.ts";

/**
 * What an issuer has done with a token. `code`: a hash of the token's code and of the code that its proxy slots name, which
 * changes with every upgrade. `paused`: no account can transfer. `blocksTreasury`: the treasury can neither receive nor pay.
 */
type TokenState = { code: Hex; paused: boolean; blocksTreasury: boolean };

/**
 * Where proxies store the address of their code: EIP-1967's implementation, the same of OpenZeppelin's first proxies (USDC),
 * and EIP-1967's beacon. A beacon's own address and code are compared, and not the code that it names.
 */
const PROXY_SLOTS: readonly Hex[] = [
  "0x360894a13ba1a3210667c828492db98dca3e2076cc3735a920a3ca505d382bbc",
  "0x7050c9e0f4ca769c69bd3a8ef740bc37934f8e2c036e5a723fd8ee048ed3f8c3",
  "0xa3f0ad74e5423aebfd80d3ef4346578335a9a72aeaee59ff6cb3582b35133d50",
];

/** The functions by which USDC, EURC and USDT report a pause and a blocked account. Other tokens have none of them. */
const issuerAbi = parseAbi([
  "function paused() view returns (bool)",
  "function isBlacklisted(address account) view returns (bool)",
  "function isBlackListed(address account) view returns (bool)",
]);

/** Reads a token's state at the newest block. A function that the token lacks reads as false. Throws ChainError. */
export async function readTokenState(chain: EvmChain, { token }: EvmToken): Promise<TokenState> {
  const ask = (data: Hex) => ({ target: token, data });
  const [code, outcomes] = await Promise.all([
    readCode(chain, token),
    simulateCalls(chain.rpc, chain, [
      ask(encodeFunctionData({ abi: issuerAbi, functionName: "paused" })),
      ...askBlocked(token, chain.treasury),
    ]),
  ]);
  const [paused, ...blocked] = outcomes.map(isTrue);
  return { code, paused: paused === true, blocksTreasury: blocked.includes(true) };
}

/**
 * Returns true if a token's issuer blocks an account at the newest block, as soon as two endpoints show the same. The only endpoint of a
 * network decides alone, and so does one that shows no block while the others do not answer. A token without a block list blocks none.
 * Throws ChainError, which is `endpoints_disagree` when one of several endpoints alone shows a block.
 */
export async function isBlockedByIssuer(chain: EvmChain, { token }: EvmToken, account: Hex): Promise<boolean> {
  const calls = askBlocked(token, account);
  const shown: boolean[] = [];
  let failure: unknown;
  for (const { rpc } of chain.listEndpointsInOrder()) {
    const outcomes = await simulateCalls(rpc, chain, calls).catch((error: unknown) => {
      failure = error;
    });
    if (!outcomes) continue;
    const isBlocked = outcomes.some(isTrue);
    if (shown.includes(isBlocked)) return isBlocked;
    shown.push(isBlocked);
  }
  if (shown.length === 0) throw failure;
  if (!shown.includes(true)) return false;
  if (chain.endpoints.length === 1) return true;
  throw new ChainError("endpoints_disagree", { detail: `one endpoint alone shows that ${token} blocks ${account}` });
}

const askBlocked = (token: Hex, account: Hex): Call[] =>
  (["isBlacklisted", "isBlackListed"] as const).map((functionName) => ({
    target: token,
    data: encodeFunctionData({ abi: issuerAbi, functionName, args: [account] }),
  }));

const isTrue = (outcome: CallOutcome): boolean =>
  outcome.ok && outcome.data.length === 66 && hexToBigInt(outcome.data) === 1n;

async function readCode({ rpc }: EvmChain, token: Hex): Promise<Hex> {
  const words = await Promise.all(
    PROXY_SLOTS.map((slot) =>
      rpc({ method: "eth_getStorageAt", params: [token, slot, "latest"] }).catch(throwChainError),
    ),
  );
  const targets = parseAnswer(() => words.map((word) => slice(word ?? zeroHash, 12)));
  const all = concat([...targets, ...(await readCodeHashes(rpc, [token, ...targets]))]);
  return keccak256(Buffer.from(all.slice(2), "hex"));
}
