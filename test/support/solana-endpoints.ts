import { startAlteringProxy } from "./altering-proxy.ts";
import { startFaultProxy } from "./fault-proxy.ts";

/** An endpoint of a Solana that can be away, lose answers, or say something else. */
export async function startEndpoint({ url }: { url: string }) {
  const altering = await startAlteringProxy({ target: url });
  const fault = await startFaultProxy({ target: altering.url });
  return {
    fault,
    alter: altering.alter,
    /** It has not seen any transaction yet; with `slotsBehind` it says itself that it is so far behind. */
    forget(slotsBehind = 0) {
      altering.alter((method, _params, result) => {
        if (method !== "getSignatureStatuses") return result;
        const { context, value } = result as { context: { slot: number }; value: unknown[] };
        return { context: { ...context, slot: context.slot - slotsBehind }, value: value.map(() => null) };
      });
    },
  };
}

export type Endpoint = Awaited<ReturnType<typeof startEndpoint>>;
