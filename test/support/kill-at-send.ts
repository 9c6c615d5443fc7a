import type { Call, FaultProxy } from "./fault-proxy.ts";
import type { Fleet } from "./fleet.ts";

/**
 * When the worker dies: before the stored transaction reaches the chain, after the chain has answered, or after the
 * chain has received it but without an answer.
 */
export const killMoments = ["before", "after", "unheard"] as const;

/**
 * Kills a worker with SIGKILL at a moment of its next broadcast through the proxy.
 * @param method JSON-RPC method of the broadcast
 */
export function killAtSend(
  proxy: FaultProxy,
  {
    worker,
    moment,
    method,
  }: { worker: Fleet["workers"][number] | undefined; moment: (typeof killMoments)[number]; method: string },
): void {
  const isSend = (call: Call) => call.method === method;
  let killed = false;
  const kill = () => {
    if (killed) return;
    killed = true;
    void worker?.kill("SIGKILL");
  };
  proxy.fail((call) => {
    if (!isSend(call) || moment !== "before" || worker?.isGone()) return undefined;
    kill();
    return { code: -32_000, message: "too late" };
  });
  proxy.onAnswer((answered) => {
    if (answered === method && moment === "after") kill();
  });
  proxy.dropAnswers((call) => {
    if (!isSend(call) || moment !== "unheard" || killed) return false;
    kill();
    return true;
  });
}

/** Makes the proxy forward everything again. */
export function clearFaults(proxy: FaultProxy): void {
  proxy.fail(undefined);
  proxy.onAnswer(undefined);
  proxy.dropAnswers(undefined);
}
