import { parseArgs } from "node:util";
import { accountMethods } from "./account-methods.ts";
import { chainMethods, localGenesis } from "./chain-methods.ts";
import { faucetMethods } from "./faucet.ts";
import { historyMethods } from "./history-methods.ts";
import { startServer } from "./rpc-server.ts";
import { openSubmit } from "./send-transaction.ts";
import { openSubscriptions } from "./subscriptions.ts";
import { openTestControls } from "./test-controls.ts";
import { openLedger } from "./validator-state.ts";

// A separate process, because a crash of litesvm must not affect any other process.
const { values } = parseArgs({
  options: {
    port: { type: "string", default: "8899" },
    "slot-ms": { type: "string", default: "400" },
    "finality-depth": { type: "string", default: "32" },
    genesis: { type: "string", default: localGenesis },
  },
});
const ledger = openLedger({ finalityDepth: Number(values["finality-depth"]), now: Date.now });
const submit = openSubmit(ledger);
const subscriptions = openSubscriptions(ledger);
const knobs = openTestControls(ledger, submit, Number(values["slot-ms"]));
const methods = {
  ...chainMethods(ledger, values.genesis),
  ...accountMethods(ledger),
  ...historyMethods(ledger),
  ...submit.methods,
  ...faucetMethods(ledger),
  ...knobs.methods,
};
const server = await startServer(Number(values.port), { methods, disturbance: knobs.disturbance, subscriptions });

for (const signal of ["SIGTERM", "SIGINT"] as const)
  process.once(signal, () => {
    knobs.close();
    server.close();
  });
