import type { GatewayConfirmPaymentRequest, GetPaymentStatusResponse } from "../api-types.ts";
import { WaitTimeoutError } from "../http/errors.ts";
import { isTransient } from "../http/retries.ts";
import type { CallOptions } from "../http/transport.ts";
import { wait } from "../http/wait.ts";
import type { WaitOptions } from "../wait-until-final.ts";

export type HandInOptions = WaitOptions & {
  /**
   * Is called with what the wallet has signed or sent, before the service gets it. Store it: if your program ends before
   * `pay` does, `gateway.confirm` with the same request resumes the payment. Never sign again instead: a sent transaction pays.
   */
  onSigned?: (request: GatewayConfirmPaymentRequest) => void | Promise<void>;
};

/** The calls of the gateway that follow the signature. */
export type HandInGateway = {
  confirm(
    payment: string,
    request: GatewayConfirmPaymentRequest,
    options?: CallOptions,
  ): Promise<GetPaymentStatusResponse>;
  waitUntilFinal(payment: string, options?: WaitOptions): Promise<GetPaymentStatusResponse>;
};

/** Longest time of a timer, milliseconds. Payments live much shorter. */
const MAX_TIMER_MS = 2 ** 31 - 1;

/**
 * Hands in what the wallet has signed or sent, and waits until the payment is final. From here on nothing may be lost: whatever
 * ends the waiting (the signal, the timeout, an error of `onSigned`), the service gets the request once before.
 */
export async function handIn(
  gateway: HandInGateway,
  payment: string,
  request: GatewayConfirmPaymentRequest,
  { signal, timeoutMs, onStatus, onSigned }: HandInOptions,
): Promise<GetPaymentStatusResponse> {
  const end = new AbortController();
  const onAbort = () => end.abort(signal?.reason);
  if (signal?.aborted) onAbort();
  signal?.addEventListener("abort", onAbort, { once: true });
  const onTimeout = () =>
    end.abort(new WaitTimeoutError(`the payment was not final within ${timeoutMs} ms`, { code: "wait_timeout" }));
  const timer = timeoutMs === undefined ? undefined : setTimeout(onTimeout, Math.min(timeoutMs, MAX_TIMER_MS));
  try {
    await onSigned?.(request);
  } catch (error) {
    end.abort(error);
  }
  try {
    const status = await confirmUntilAccepted(gateway, payment, request, end.signal);
    if (status.isFinal) return status;
    return await gateway.waitUntilFinal(payment, { signal: end.signal, ...(onStatus ? { onStatus } : {}) });
  } finally {
    clearTimeout(timer);
    signal?.removeEventListener("abort", onAbort);
  }
}

/** Delay between confirms of a service that cannot be reached, milliseconds. */
const CONFIRM_DELAY_MS = 1000;
/** How long a confirm may still take when the waiting has ended, milliseconds. */
const LAST_CONFIRM_MS = 5000;

/** Confirms until the service answers, or the signal is aborted: at least once, whenever that is. */
async function confirmUntilAccepted(
  gateway: HandInGateway,
  payment: string,
  request: GatewayConfirmPaymentRequest,
  end: AbortSignal,
): Promise<GetPaymentStatusResponse> {
  const late = new AbortController();
  let timer: ReturnType<typeof setTimeout> | undefined;
  const onEnd = () => {
    timer = setTimeout(() => late.abort(end.reason), LAST_CONFIRM_MS);
  };
  if (end.aborted) onEnd();
  end.addEventListener("abort", onEnd, { once: true });
  try {
    for (;;) {
      try {
        return await gateway.confirm(payment, request, { signal: late.signal });
      } catch (error) {
        if (!isTransient(error)) throw error;
        await wait(error.retryAfterMs ?? CONFIRM_DELAY_MS, end);
      }
    }
  } finally {
    clearTimeout(timer);
    end.removeEventListener("abort", onEnd);
  }
}
