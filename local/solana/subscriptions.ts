import type { WebSocket } from "ws";
import { apiVersion, commitmentOf, configAt, type Params, readSignature, textAt } from "./rpc-params.ts";
import { RpcError } from "./validator-errors.ts";
import type { Ledger } from "./validator-state.ts";

/** A subscription. `check` runs after every change and returns true when the subscription has ended. */
type Watch = { socket: WebSocket; check: () => boolean };

export type Subscriptions = {
  /** Returns the response to a call that came over a socket. */
  call(socket: WebSocket, method: string, params: Params): unknown;
  leave(socket: WebSocket): void;
};

/** Serves signatureSubscribe and slotSubscribe. */
export function openSubscriptions({ slots, history, onChange }: Ledger): Subscriptions {
  const watches = new Map<number, Watch>();
  let last = 0;
  let notifiedSlot = slots.tip().slot;

  function check(id: number, watch: Watch): void {
    if (watch.check()) watches.delete(id);
  }

  onChange(() => {
    for (const [id, watch] of watches) check(id, watch);
    notifiedSlot = slots.tip().slot;
  });

  function add(socket: WebSocket, checkOnce: (id: number) => boolean): number {
    last += 1;
    const id = last;
    const watch = { socket, check: () => checkOnce(id) };
    watches.set(id, watch);
    // The response with the subscription id is sent first.
    setImmediate(() => (watches.has(id) ? check(id, watch) : undefined));
    return id;
  }

  function watchSignature(socket: WebSocket, params: Params): number {
    const signature = readSignature(textAt(params, 0));
    const config = configAt(params, 1);
    const wanted = commitmentOf(config);
    let isReceived = config["enableReceivedNotification"] !== true;
    return add(socket, (subscription) => {
      const landed = history.find(signature);
      if (landed === undefined) return false;
      const notify = (value: unknown) => {
        const result = { context: { apiVersion, slot: slots.at(wanted).slot }, value };
        send(socket, "signatureNotification", { result, subscription });
      };
      if (!isReceived) notify("receivedSignature");
      isReceived = true;
      if (landed.slot.height > slots.at(wanted).height) return false;
      notify({ err: landed.execution.failure ?? null });
      return true;
    });
  }

  const watchSlots = (socket: WebSocket): number =>
    add(socket, (subscription) => {
      const { slot, parent } = slots.tip();
      if (slot === notifiedSlot) return false;
      send(socket, "slotNotification", { result: { slot, parent, root: slots.at("finalized").slot }, subscription });
      return false;
    });

  return {
    call(socket, method, params) {
      if (method === "signatureSubscribe") return watchSignature(socket, params);
      if (method === "slotSubscribe") return watchSlots(socket);
      if (method === "signatureUnsubscribe" || method === "slotUnsubscribe") return watches.delete(Number(params[0]));
      throw new RpcError(-32601, "Method not found");
    },
    leave(socket) {
      for (const [id, watch] of watches) if (watch.socket === socket) watches.delete(id);
    },
  };
}

function send(socket: WebSocket, method: string, params: unknown): void {
  if (socket.readyState === socket.OPEN) socket.send(JSON.stringify({ jsonrpc: "2.0", method, params }));
}
