import type { EvmChain, EvmToken } from "./evm/open-evm-chain.ts";
import type { SolanaChain, SolanaToken } from "./solana/open-solana-chain.ts";

/** An opened network. `namespace` is the CAIP-2 namespace, which names the chain family. */
export type Chain = EvmChain | SolanaChain;
/** A token of an opened network. */
export type Token = EvmToken | SolanaToken;
/** Every network of the deployment, by CAIP-2 id. */
export type Chains = ReadonlyMap<string, Chain>;
