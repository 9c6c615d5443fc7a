import type { Call, FaultProxy } from "./fault-proxy.ts";
import type { Fleet } from "./fleet.ts";

/** The bytes are stored and never arrive; or they did, and nobody wrote that down; or nobody even heard. */
export const moments = ["before", "after", "unheard"] as const;

/** Kills a worker with SIGKILL at a moment of its next send through the proxy. @param method of the calls that send */
export function killAtSend(
  proxy: FaultProxy,
  {
    worker,
    moment,
    method,
  }: { worker: Fleet["workers"][number] | undefined; moment: (typeof moments)[number]; method: string },
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

/** The proxy lets everything through again. */
export function letSends(proxy: FaultProxy): void {
  proxy.fail(undefined);
  proxy.onAnswer(undefined);
  proxy.dropAnswers(undefined);
}
