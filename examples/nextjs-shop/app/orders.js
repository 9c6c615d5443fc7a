// Each order by its id: { state: "open" | "paid" | "unpaid", paymentId, link }. A real shop keeps its orders in a database.
// Next.js loads a module once for each route, so a variable of this module would not be shared.
/** @typedef {{ state: "open" | "paid" | "unpaid", paymentId?: string, link?: string }} Order */
const shared = /** @type {{ orders?: Map<string, Order> }} */ (globalThis);
shared.orders ??= new Map();
const { orders } = shared;

/** Returns an order, which is created as an open one the first time. */
export function openOrder(id) {
  /** @type {Order} */
  const order = orders.get(id) ?? { state: "open" };
  orders.set(id, order);
  return order;
}

/** Returns an order, or undefined for an unknown one. */
export const findOrder = (id) => orders.get(id);

/**
 * Ends the order of a payment. Only an open order ends, and only by its own payment: nothing is shipped twice, or for another
 * payment. Returns false as long as the shop has not stored which payment the order has.
 */
export function endOrder({ reference_id: id, payment_id: paymentId, live }, state) {
  const isLive = !process.env.PAY_API_KEY.startsWith("svc_test_");
  const order = orders.get(id);
  if (order && !order.paymentId) return false;
  const isOwn = order?.paymentId === paymentId && live === isLive;
  if (isOwn && order.state === "open") {
    order.state = state;
    console.log(`order ${id} is ${state}`); // a real shop ships here
  } else if (state === "paid" && !(isOwn && order.state === "paid")) {
    console.error(`ATTENTION: payment ${paymentId} succeeded, and order ${id} does not wait for it`);
  }
  return true;
}
