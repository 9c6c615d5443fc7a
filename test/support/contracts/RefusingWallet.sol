// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

/// A wallet that accepts every signature (ERC-1271) until it is given bytes, with which it then reverts.
contract RefusingWallet {
    bytes public words;

    function refuseWith(bytes calldata given) external {
        words = given;
    }

    function isValidSignature(bytes32, bytes calldata) external view returns (bytes4) {
        if (words.length > 0) revert(string(words));
        return 0x1626ba7e;
    }
}
