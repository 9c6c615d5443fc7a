/** Every type of event that an endpoint can receive, and when it is sent. */
export const eventTypes = {
  "payment.created": "a payment was created",
  "payment.processing": "the buyer has committed to an option",
  "payment.succeeded": "the money has arrived, as final as its network demands",
  "payment.failed": "the payment ended without money",
  "payment.expired": "the payment ended without money, because its deadline has passed",
  "payment.cancelled": "the payment was cancelled",
  "payment.settled": "the payout of the payment has arrived",
  "refund.created": "a refund was requested, or recorded where the service sends nothing",
  "refund.held": "screening rejects the refund's receiver, or the token's issuer blocks it",
  "refund.succeeded": "the money of the refund has arrived",
  "refund.failed": "the refund was withdrawn, and nothing was sent",
  "destination.change_requested": "a change of where a merchant is paid was requested",
  "destination.approved": "the change was approved before its waiting period ended",
  "destination.applied": "payouts that begin from now on use the change",
  "destination.rejected": "the change was rejected, withdrawn or replaced",
  "approval_key.registered": "a key that may approve changes of where a merchant is paid was registered",
  "approval_key.revoked": "an approval key was revoked and approves nothing any more",
  "webhook_endpoint.created": "another webhook endpoint of the account was registered",
  "webhook_endpoint.updated": "another webhook endpoint was changed, enabled or disabled, or its secret was rotated",
  "webhook_endpoint.deleted": "another webhook endpoint was deleted",
  "webhook_endpoint.disabled": "another webhook endpoint was disabled, because it failed for days",
  "webhook_endpoint.test": "a test event was requested; sent to one endpoint, whatever its filters are",
} as const satisfies Record<string, string>;

export type EventType = keyof typeof eventTypes;

/** Returns true for a type of event that an endpoint can receive. */
export function isEventType(text: string): text is EventType {
  return Object.hasOwn(eventTypes, text);
}
