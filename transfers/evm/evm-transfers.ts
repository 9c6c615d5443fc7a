import { readHead } from "../../chains/evm/blocks.ts";
import { PAYOUT_VALID_BEFORE, payoutKind } from "../../chains/evm/evm-payouts.ts";
import { lowerCaseHex } from "../../chains/evm/hex.ts";
import { type EvmChain, getEvmToken } from "../../chains/evm/open-evm-chain.ts";
import { readFromReadable } from "../../chains/evm/readable-answers.ts";
import { openEvmKeys } from "../../chains/evm/signers/open-evm-keys.ts";
import { isBlockedByIssuer } from "../../chains/evm/token-states.ts";
import { isWatched } from "../../db/queries/chain-cursors.ts";
import type { TransferDriver } from "../transfer-driver.ts";
import { readEvmSigned } from "../verification.ts";
import { runBlockPass } from "./block-pass.ts";
import { relayReady, relayWallets } from "./drive-lanes.ts";
import { evmWallets } from "./evm-wallets.ts";
import { readGasRules } from "./gas-limits.ts";
import { wakeOwners } from "./lane-capacity.ts";
import { readLaneBalances } from "./lane-funds.ts";
import { isLaneHeld } from "./lane-holds.ts";
import { singleTransferGas } from "./lane-signers.ts";
import { screenByOracle } from "./oracle-screening.ts";
import { deductLatestCharge, readCharge } from "./rollup-charge.ts";
import { startEvm } from "./start-chain.ts";
import { checkKey, verifyAnyKind } from "./verify-authorizations.ts";
import { readIssuerActions } from "./watch-tokens.ts";

/** Returns the driver of an EVM chain. */
export function evmTransfers(chain: EvmChain): TransferDriver {
  return {
    readsBlocks: true,
    wallets: evmWallets(chain),
    openKeys: async (stores, readers) => {
      stores.keys.set(chain.chain, await openEvmKeys(chain.network, readers));
    },
    start: (deps) => startEvm(deps, chain),
    listWatched: async ({ db }) => new Set((await isWatched(db, chain.chain)) ? chain.tokens.keys() : []),
    readLastHeight: () => readFromReadable(chain, readHead),
    runPass: (deps, watched, args) => runBlockPass(deps, chain, watched, args),
    readHistory: async () => "idle",
    send: (deps, sender, handlers) => {
      const relay = sender === "wallet lane" ? relayWallets : relayReady;
      return relay(deps, chain.chain, handlers);
    },
    wakeOwners: (deps, sender) => wakeOwners(deps, chain, sender),
    payoutForm: (asset) => ({ kind: payoutKind(getEvmToken(chain, asset)), valid_before: PAYOUT_VALID_BEFORE }),
    verify: (deps, all, by) => verifyAnyKind(deps, chain, all.map(readEvmSigned), by),
    checkSignature: (signed) => checkKey(chain, readEvmSigned(signed)),
    screen: (deps, accounts) => screenByOracle(deps, chain, accounts),
    isBlockedByIssuer: (asset, account) => isBlockedByIssuer(chain, getEvmToken(chain, asset), lowerCaseHex(account)),
    listBarred: async (deps) => (await readGasRules(deps, chain, { forLane: false })).barred,
    readGasBalances: async (deps) => {
      const [balances] = await Promise.all([readLaneBalances(deps, chain), readCharge(deps, chain)]);
      return balances;
    },
    readIssuerActions: (deps) => readIssuerActions(deps, chain),
    isLaneHeld: (lane, status) => {
      const policy = deductLatestCharge(chain, singleTransferGas(chain, lowerCaseHex(lane.address)));
      return isLaneHeld(lane, status, { policy, feeModel: chain.network.feeModel });
    },
  };
}
