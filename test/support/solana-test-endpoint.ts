import { startAlteringProxy } from "./altering-proxy.ts";
import { startFaultProxy } from "./fault-proxy.ts";

/** Starts a proxy for a Solana endpoint that can be unreachable, lose answers or alter them. */
export async function startSolanaProxy({ url }: { url: string }) {
  const altering = await startAlteringProxy({ target: url });
  const fault = await startFaultProxy({ target: altering.url });
  return {
    fault,
    alter: altering.alter,
    /** Makes the endpoint know no transaction, and report a slot that is `slotsBehind` behind. */
    forget(slotsBehind = 0) {
      altering.alter((method, _params, result) => {
        if (method !== "getSignatureStatuses") return result;
        const { context, value } = result as { context: { slot: number }; value: unknown[] };
        return { context: { ...context, slot: context.slot - slotsBehind }, value: value.map(() => null) };
      });
    },
  };
}
